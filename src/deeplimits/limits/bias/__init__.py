"""Which solution does the optimizer pick?"""
