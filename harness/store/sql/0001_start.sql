-- Version 1. No primary key and no index on purpose: uniqueness comes from the journals' offsets and is
-- checked by `harness store verify`. Identity of an item is always (task_id, version, item_id).

CREATE TABLE models (
    model_id VARCHAR, family VARCHAR, params BIGINT, release_date DATE, license VARCHAR,
    source VARCHAR, revision VARCHAR, sha256 VARCHAR, is_baseline BOOLEAN
);
CREATE TABLE model_variants (
    variant_id VARCHAR, model_id VARCHAR, backend VARCHAR, name VARCHAR, revision VARCHAR,
    dtype VARCHAR, quant_scheme VARCHAR, quant_simulated BOOLEAN, bits_w DOUBLE, bits_a DOUBLE,
    bits_kv DOUBLE, group_size INTEGER, weight_bytes BIGINT, identity_json VARCHAR
);
CREATE TABLE tasks (
    task_id VARCHAR, version VARCHAR, benchmark VARCHAR, split VARCHAR, dataset_sha256 VARCHAR,
    prompt_sha256 VARCHAR, scorer_sha256 VARCHAR, license VARCHAR, source VARCHAR, metric VARCHAR,
    higher_is_better BOOLEAN, human_time_source VARCHAR, info_json VARCHAR
);
CREATE TABLE items (
    task_id VARCHAR, version VARCHAR, item_id VARCHAR, cluster_id VARCHAR, category VARCHAR,
    human_minutes DOUBLE, content_sha256 VARCHAR, public BOOLEAN, canary VARCHAR
);
CREATE TABLE runs (
    run_id VARCHAR, task_id VARCHAR, version VARCHAR, model VARCHAR, variant_id VARCHAR,
    is_baseline BOOLEAN, strategy VARCHAR, solver VARCHAR, scorer VARCHAR, metric VARCHAR,
    seed BIGINT, errors VARCHAR, epochs INTEGER, n_planned BIGINT, status VARCHAR,
    started TIMESTAMP, finished TIMESTAMP, seconds DOUBLE, cached BIGINT, git_commit VARCHAR,
    dirty BOOLEAN, submitter VARCHAR, signature VARCHAR, config_json VARCHAR, env_json VARCHAR
);
-- text_id is the record's seq in its run's journal, and the key of its row in the run's text parts;
-- key is the first 128 bits of the content key.
CREATE TABLE samples (
    run_id VARCHAR, task_id VARCHAR, version VARCHAR, item_id VARCHAR, epoch INTEGER,
    attempt INTEGER, key UUID, status VARCHAR, error_kind VARCHAR, finish_reason VARCHAR,
    tokens_in BIGINT, tokens_out BIGINT, tokens_reasoning BIGINT, reused_from VARCHAR,
    isolation VARCHAR, latency_ms FLOAT, peak_mem_bytes BIGINT, cost_usd DOUBLE, ts TIMESTAMP,
    text_id BIGINT
);
-- Never updated: rescoring appends, and the highest seq of (run, item, epoch, attempt, metric) is valid.
-- answer is the head of a long one; explanations and whole answers lie in the text parts, by seq.
CREATE TABLE scores (
    run_id VARCHAR, task_id VARCHAR, version VARCHAR, item_id VARCHAR, epoch INTEGER,
    attempt INTEGER, seq BIGINT, scorer VARCHAR, scorer_version VARCHAR, metric VARCHAR,
    status VARCHAR, value DOUBLE, passed BOOLEAN, answer VARCHAR, reason VARCHAR,
    judge_variant VARCHAR, replaces BIGINT
);
-- The start and end of a run are events too, so that every line of a journal has its row.
CREATE TABLE events (
    run_id VARCHAR, seq BIGINT, kind VARCHAR, ts TIMESTAMP, item_id VARCHAR, epoch INTEGER,
    attempt INTEGER, json VARCHAR
);
-- One row a run: where to go on, and the hash of the last 4 KiB before that place.
CREATE TABLE ingest_offsets (
    run_id VARCHAR, bytes BIGINT, sha_tail VARCHAR, next_seq BIGINT, parts INTEGER, suspect VARCHAR
);
-- One row a turn: what was read then, so that a change anywhere in a journal shows.
CREATE TABLE ingest_slices (run_id VARCHAR, byte BIGINT, bytes BIGINT, sha256 VARCHAR);
CREATE TABLE ingest_errors (run_id VARCHAR, byte BIGINT, reason VARCHAR);
-- Figures of others, with their source; never joined with what was measured here.
CREATE TABLE published_results (
    source VARCHAR, url VARCHAR, citation VARCHAR, license VARCHAR, model_name VARCHAR,
    task_id VARCHAR, metric VARCHAR, value DOUBLE, note VARCHAR
);
-- Built anew in every snapshot.
CREATE TABLE item_scores (
    variant_id VARCHAR, strategy VARCHAR, task_id VARCHAR, version VARCHAR, item_id VARCHAR,
    n BIGINT, k DOUBLE, mean DOUBLE, cluster_id VARCHAR
);
