"""The scheduling core of Kueue as a library: objects in, decisions out, nothing done."""
