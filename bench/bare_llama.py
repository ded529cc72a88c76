"""llama.cpp's server and nothing else, with the arguments that stand in the JSON on standard input."""

import json
import sys
import time

import xllamacpp


def main() -> None:
    job = json.load(sys.stdin)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = job["model"]
    parameters.model_alias = {job["alias"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = job["port"]
    parameters.ui = False
    parameters.api_keys = [job["key"]]
    parameters.n_ctx = job["window"]
    parameters.n_gpu_layers = job.get("gpu_layers", 0)
    parameters.n_parallel = 1
    parameters.use_jinja = True
    parameters.slot_save_path = f"{job['slots_folder']}/"
    parameters.chat_template = job["template"]
    parameters.cpuparams.n_threads = job["threads"]
    parameters.cpuparams_batch.n_threads = job["reading_threads"]
    server = xllamacpp.Server(parameters)
    time.sleep(3600)
    del server


if __name__ == "__main__":
    main()
