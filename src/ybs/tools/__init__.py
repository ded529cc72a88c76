"""The tools that a model may call, and the toolbox that checks, confirms, runs and cuts."""
