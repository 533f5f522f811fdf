"""Measure how well forecasts hold on logs of real machines: `make forecast`."""
