"""What both sides stand on and neither owns: it knows no model, and is tested by itself against other libraries."""
