"""Tests of predictors, jobs, engines and model repositories."""
