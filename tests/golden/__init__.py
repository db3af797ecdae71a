"""Numbers of calibrations, recorded: ``numbers.json`` is what they were when it was written."""
