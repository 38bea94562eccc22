"""Networks that stay close to their linearization."""
