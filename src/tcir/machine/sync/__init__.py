"""Named barriers, mbarriers and cluster barriers."""
