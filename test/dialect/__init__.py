"""Tests of the dialect: its rules, examples and pages."""
