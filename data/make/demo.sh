#!/bin/sh
# A first run, as `make demo` calls it: sh data/make/demo.sh HARNESS STORE
# Two tasks, three baselines and the small test model, in one table. Asks nothing of the network.
set -eu

harness=${1:-harness}
store=${2:-results}
tasks=gsm8k,aicrypto/mcq

say() { printf '%s\n' "$*"; }

say "Two tasks with items of our own: gsm8k (60 word problems), aicrypto/mcq (50 choice questions)."
say "Four models: mock:gold knows every answer and must score 100, mock:empty says nothing and must"
say "score 0, mock:random guesses; hf:tiny is a real model of a million parameters that came along. It"
say "tests the plumbing and is no good at either task: expect 0."
say ""
if [ -d "$store/runs" ]; then
    say "The store '$store' is there already: answers that it holds are reused, and no model is asked twice."
else
    say "Every attempt is kept in the store '$store'."
fi
say ""

"$harness" run --task "$tasks" --store "$store" \
    --model mock:gold --model mock:empty --model mock:random --model hf:tiny

say "Brackets hold the 95 % interval. Counted is the denominator: unreadable answers are errors and"
say "stay in it as wrong. Next, try:"
say ""
say "  # one attempt whole: prompt, output, reference, verdict"
say "  $harness show sample last own-mcq-C01 --store $store"
say ""
say "  # a model of your own: put its folder (config.json, *.safetensors, tokenizer) behind hf:"
say "  $harness run --task gsm8k --limit 10 --model hf:data/tiny --store $store"
say ""
say "  # everything measured so far, a row a run"
say "  $harness export results --format csv --out $store/results.csv --store $store"
