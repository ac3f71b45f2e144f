"""What is built on the engine: forward mode, Jacobians, Hessians, checks, derivatives as text."""
