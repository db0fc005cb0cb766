-- Version 3. Fits of item response theory. They come from no journal: `rebuild` and `compact` carry them
-- over. fit_id names data, method and kind of scores, so the same fit made again takes its own place.

CREATE TABLE irt_fits (
    fit_id VARCHAR, method VARCHAR, scores VARCHAR, seed BIGINT, parameterisation VARCHAR,
    gauge VARCHAR, hyper_json VARCHAR, link_json VARCHAR, anchors_json VARCHAR, source VARCHAR,
    selection_json VARCHAR, data_hash VARCHAR, code_commit VARCHAR, versions_json VARCHAR,
    converged BOOLEAN, verdict_json VARCHAR, log_loss DOUBLE, n_models BIGINT, n_items BIGINT,
    n_cells BIGINT, seconds DOUBLE, created TIMESTAMP
);
-- Of a fit over a file, item_id and variant_id are the file's own names, and task, version and strategy
-- are NULL. `human_minutes_hat`, `lo` and `hi` need a link to human minutes, horizons too.
CREATE TABLE irt_items (
    fit_id VARCHAR, task_id VARCHAR, version VARCHAR, item_id VARCHAR, a DOUBLE, b DOUBLE, d DOUBLE,
    se_log_a DOUBLE, se_b DOUBLE, se_d DOUBLE, n_models BIGINT, slope_z DOUBLE,
    human_minutes_hat DOUBLE, lo DOUBLE, hi DOUBLE, flags VARCHAR[]
);
CREATE TABLE irt_models (
    fit_id VARCHAR, variant_id VARCHAR, strategy VARCHAR, model VARCHAR, theta DOUBLE, se DOUBLE,
    n_items BIGINT, horizon50_min DOUBLE, lo DOUBLE, hi DOUBLE, horizon80_min DOUBLE, lo80 DOUBLE,
    hi80 DOUBLE, flags VARCHAR[]
);
