"""Makes this machine one for which there is no ptxas."""

import sys

import tcir.codegen.tools

tcir.codegen.tools._PACKAGES = {"ptxas": "no-such", "nvdisasm": "no-such"}
tcir.codegen.tools.importlib.util.find_spec = lambda name: None
sys.platform = "darwin"
