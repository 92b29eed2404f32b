"""Tests of the HTML map in a real browser, and the small driver they use."""
