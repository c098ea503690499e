"""Lowering rules of ``convert-tc-to-nvvm``, one file per op group."""

from tcir.rule_files import load_folder

load_folder(__name__)
