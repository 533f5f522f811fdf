"""The commands, a file each: `parsing` imports the one that is called."""
