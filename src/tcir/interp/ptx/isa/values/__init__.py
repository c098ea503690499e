"""What instructions share: element-wise application, rounding, exact arithmetic, fragments."""
