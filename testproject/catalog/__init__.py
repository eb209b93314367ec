"""What the shop sells: products, their pictures, and the price lists that suppliers send."""
