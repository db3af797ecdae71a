"""Calibration of data that do not fit: blocks of rows, one pass, memory whatever their number."""

from temperance.streaming.calibrate import calibrate_blocks
from temperance.streaming.folds import fold_numbers
from temperance.streaming.sources import blocks_of_arrays, blocks_of_parquet

__all__ = ["blocks_of_arrays", "blocks_of_parquet", "calibrate_blocks", "fold_numbers"]
