"""Calibration on data larger than memory, or than one machine: statistics that add up over rows."""

from temperance.streaming.accumulate import FoldMoments, partition_moments
from temperance.streaming.calibrate import calibrate_blocks, calibrate_moments
from temperance.streaming.dask_partitions import calibrate_dask
from temperance.streaming.folds import fold_numbers
from temperance.streaming.sources import blocks_of_arrays, blocks_of_parquet

__all__ = [
    "FoldMoments",
    "blocks_of_arrays",
    "blocks_of_parquet",
    "calibrate_blocks",
    "calibrate_dask",
    "calibrate_moments",
    "fold_numbers",
    "partition_moments",
]
