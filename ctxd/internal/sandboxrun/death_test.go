package sandboxrun

func child([]string) int { return 0 }
