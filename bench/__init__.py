# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks and demonstrations; bench/run starts them."""
