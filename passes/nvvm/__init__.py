"""Rules of ``convert-tc-to-nvvm``, one file per op group; the pass loads all of the folder."""
