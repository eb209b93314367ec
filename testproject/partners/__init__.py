"""Other companies: a carrier whose service is flaky, a bank that says no."""
