"""What each packet's loss or delay costs."""
