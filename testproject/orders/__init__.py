"""What people bought."""
