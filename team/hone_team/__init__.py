"""Carries what Hone shares within a team, on Flower."""
