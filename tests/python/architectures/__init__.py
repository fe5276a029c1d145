# SPDX-License-Identifier: Apache-2.0
"""Architectures of Hugging Face, trained plainly and by a plan. See run.py."""
