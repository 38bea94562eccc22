"""Limits on pages: pictures as compact data, symbols in letters, code in colours, and the HTML around them."""
