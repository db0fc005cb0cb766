-- Version 2. What the views say of every run and item, kept in the database: only what a changed run
-- touches is made again (harness/store/derive.py), and a snapshot is a plain copy.

-- One row a run, as `v_run_totals`.
CREATE TABLE run_totals (
    run_id VARCHAR, n_attempts BIGINT, n_scored BIGINT, n_counted BIGINT, error BIGINT,
    error_harness BIGINT, timeout BIGINT, truncated BIGINT, refused BIGINT, unscored BIGINT,
    unavailable BIGINT, no_answer BIGINT, reused BIGINT, tokens_in BIGINT, tokens_out BIGINT,
    cost_usd DOUBLE
);
-- One row a run and metric, as `v_metric_totals`.
CREATE TABLE metric_totals (
    run_id VARCHAR, metric VARCHAR, n_items BIGINT, total DOUBLE, total_sq DOUBLE,
    is_binary BOOLEAN, n_clusters BIGINT, cluster_sq DOUBLE
);
-- Runs whose rows in `run_totals`, `metric_totals` and `item_scores` are older than their samples and
-- scores. Written in the transaction that brings those, so that no crash can lose it; `migrate` puts in
-- all runs when the views change.
CREATE TABLE stale_runs (run_id VARCHAR);
