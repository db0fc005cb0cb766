-- Version 4. Banks of calibrated items, for adaptive runs. Like fits they come from no journal: `rebuild`
-- and `compact` carry them over. A bank made again under its name takes its own place.

CREATE TABLE irt_banks (
    name VARCHAR, fit_id VARCHAR, method VARCHAR, gauge VARCHAR, data_hash VARCHAR,
    converged BOOLEAN, mean DOUBLE, sd DOUBLE, widen DOUBLE, n_items BIGINT, created TIMESTAMP
);
-- logit p = a (theta - b) = a theta + d; `cov` is the covariance of log a and d. Of a fit over a file,
-- task, version, category and content are NULL.
CREATE TABLE irt_bank_items (
    name VARCHAR, task_id VARCHAR, version VARCHAR, item_id VARCHAR, category VARCHAR,
    content_sha256 VARCHAR, a DOUBLE, b DOUBLE, d DOUBLE, se_log_a DOUBLE, se_b DOUBLE,
    se_d DOUBLE, cov DOUBLE
);
-- Every answer to the item comes from adaptive runs: chosen by what was answered before, so that the mean
-- over such items is no estimate of the score over all.
ALTER TABLE item_scores ADD COLUMN adaptive BOOLEAN;
