#!/bin/sh
# A first run, as `make demo` calls it: sh data/make/demo.sh HARNESS STORE [LIMIT]
# A real small model beside the small test model on LIMIT items of each of two tasks, and as an agent on two
# challenges; two design rules whose decks run in KLayout; then three baselines and the test model on all items of the two tasks. Only the real model comes over
# the network, once; without it, or without a sandbox, the demo goes on.
set -eu

harness=${1:-harness}
store=${2:-results}
limit=${3:-10}
tasks=gsm8k,aicrypto/mcq

say() { printf '%s\n' "$*"; }

say "Two tasks with items of our own: gsm8k (60 word problems), aicrypto/mcq (50 choice questions)."
say "Four models: mock:gold knows every answer and must score 100, mock:empty says nothing and must"
say "score 0, mock:random guesses; hf:tiny is a real model of a million parameters that came along. It"
say "tests the plumbing and is no good at either task: expect 0. First of all, where there is a network,"
say "gguf:smollm2: 135 million parameters in 4 bits, 93 MB to fetch."
say ""
if [ -d "$store/runs" ]; then
    say "The store '$store' is there already: answers that it holds are reused, and no model is asked twice."
else
    say "Every attempt is kept in the store '$store'."
fi
say ""

if "$harness" fetch smollm2 >/dev/null; then
    say "SmolLM2 beside the test model, on $limit items of each task (an answer is cut after 200 tokens):"
    say ""
    "$harness" run --task "$tasks" --store "$store" --limit "$limit" --max-tokens 200 \
        --model gguf:smollm2 --model hf:tiny
    agents="--model gguf:smollm2 --model mock:gold"
else
    say "SmolLM2 could not be fetched (the line above says why): the demo goes on without it."
    say ""
    agents="--model mock:gold"
fi

say "aicrypto/ctf: an agent breaks ciphers with Python and a shell in a box of its own (five turns on two"
say "challenges here; mock:gold runs our own solutions in the same box, SmolLM2 is too small for this):"
say ""
# shellcheck disable=SC2086  # several words are meant
if ! "$harness" run --task aicrypto/ctf --ids own-ctf-wiener-1,own-ctf-ecb-byte-1 --store "$store" \
    --max-tokens 100 --solver "agent?max_turns=5" $agents; then
    say "The challenges did not finish (see above; '$harness doctor' says what to install): the demo goes on"
    say "without them."
    say ""
fi

say "rule2drc/script: a chip's design rule in words, answered by a deck that KLayout runs on a dozen layouts at and"
say "around the limit (two rules here; mock:random writes checks that look the part):"
say ""
if ! "$harness" run --task rule2drc/script --first 2 --store "$store" --model mock:gold --model mock:random; then
    say "KLayout is not there (see above): the demo goes on without it."
    say ""
fi

say "ams_sizing/loop: sizes for an amplifier's transistors within ten simulations by ngspice (no model here: a search"
say "proposes them, and what it reaches is the bar for a model):"
say ""
if ! "$harness" run --task ams_sizing/loop --ids five_trans_ota/sky130/2 --store "$store" --model mock:empty \
    --solver "optimiser?opt=tpe"; then
    say "ngspice or its transistor models are not there (see above): the demo goes on without them."
    say ""
fi

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
say "  # the same in the browser: rank intervals, every sample, runs while they go; Ctrl-C ends it"
say "  $harness board --store $store"
say ""
say "  # everything measured so far, a row a run"
say "  $harness export results --format csv --out $store/results.csv --store $store"
