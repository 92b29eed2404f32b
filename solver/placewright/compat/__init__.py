"""Drop-in modules with the names, arguments, results and errors of RLightning, verl and NeMo-RL.

Usage: change one import, for example ``from placewright.compat.verl import RayResourcePool``. Nothing is imported here,
so that using one system's module never loads another's.

When to modify: not at all; each system has its own module beside this one.
"""
