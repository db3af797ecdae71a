"""Calibration on data larger than memory: blocks of rows, one pass, constant memory."""

from temperance.streaming.calibrate import calibrate_blocks
from temperance.streaming.folds import fold_numbers
from temperance.streaming.sources import blocks_of_arrays, blocks_of_parquet

__all__ = ["blocks_of_arrays", "blocks_of_parquet", "calibrate_blocks", "fold_numbers"]
