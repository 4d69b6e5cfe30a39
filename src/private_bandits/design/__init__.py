"""G-optimal designs: how often to play which action, so that the worst estimate is as good as it gets.

optimal.py finds one with a certificate. approximate.py finds many at once, as good as regret needs.
"""
