"""The jobs of Stockade, each a spec, a run function and a result: attack, certify, evaluate, tune, train, detector."""
