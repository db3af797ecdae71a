"""Strategies compared in settings with known risks and on real data, and the thesis reproduced."""
