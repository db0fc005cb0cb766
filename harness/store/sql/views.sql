-- The rules of harness/core/status.py for everything stored; a test compares the two over every
-- combination. Read by `connect` and put in place whenever this text changes: no migration needed.

CREATE OR REPLACE MACRO status_of(solved, scored) AS
    CASE
        WHEN solved = 'unscored' AND scored IS NOT NULL THEN scored
        WHEN solved = 'truncated' AND scored IN ('unscored', 'unavailable') THEN scored
        ELSE solved
    END;

CREATE OR REPLACE MACRO value_counted(status, kind, value, policy) AS
    CASE
        WHEN status IN ('unscored', 'unavailable') THEN NULL
        WHEN status = 'scored' THEN value
        WHEN status = 'truncated' THEN coalesce(value, 0.0)
        WHEN status = 'refused' THEN 0.0
        WHEN coalesce(kind, 'model') <> 'model' OR policy = 'exclude' THEN NULL
        ELSE 0.0
    END;

-- The valid verdict of every attempt, with all its metrics: a metric that only an older verdict has is
-- history. A strategy's verdict on its draws is another one than the scorer's on the first of them.
CREATE OR REPLACE VIEW v_scores AS
SELECT * FROM scores
QUALIFY seq = max(seq) OVER (
    PARTITION BY run_id, task_id, version, item_id, epoch, attempt, starts_with(scorer, 'strategy:')
);

-- One row an item and epoch: its latest attempt with its valid headline score.
CREATE OR REPLACE VIEW v_attempts AS
WITH latest AS (
    SELECT * FROM samples
    QUALIFY row_number() OVER (
        PARTITION BY run_id, task_id, version, item_id, epoch ORDER BY attempt DESC, text_id DESC
    ) = 1
), joined AS (
    SELECT
        s.* EXCLUDE (status, error_kind, isolation),
        status_of(s.status, h.status) AS status,
        s.status = 'unscored' AND coalesce(h.status = 'error', false) AS by_score,
        s.error_kind AS solve_error_kind, coalesce(s.isolation, h.isolation) AS ran_in,
        h.value AS score_value, h.passed, h.answer, h.reason AS score_reason, h.seq AS score_seq,
        r.errors AS policy
    FROM latest s
    JOIN runs r USING (run_id)
    LEFT JOIN v_scores h
        ON h.run_id = s.run_id AND h.task_id = s.task_id AND h.version = s.version
        AND h.item_id = s.item_id AND h.epoch = s.epoch AND h.attempt = s.attempt
        AND h.metric = r.metric
), known AS (
    SELECT
        * EXCLUDE (by_score, solve_error_kind, score_reason),
        CASE
            WHEN NOT by_score THEN solve_error_kind
            WHEN score_reason = 'scorer_fault' THEN 'harness'
            ELSE 'model'
        END AS error_kind,
        CASE WHEN by_score THEN coalesce(score_reason, 'no_answer') ELSE score_reason END AS reason
    FROM joined
)
SELECT
    k.run_id, k.task_id, k.version, k.item_id, k.epoch, k.attempt, k.status, k.error_kind,
    k.reason, k.score_value, k.passed, k.answer,
    value_counted(k.status, k.error_kind, k.score_value, k.policy) AS counted,
    i.cluster_id, i.category, k.finish_reason, k.tokens_in, k.tokens_out, k.tokens_reasoning,
    k.latency_ms, k.peak_mem_bytes, k.cost_usd, k.ran_in AS isolation, k.reused_from, k.key, k.ts,
    k.text_id, k.score_seq, k.policy
FROM known k
LEFT JOIN items i USING (task_id, version, item_id);

-- Every metric of a run: the headline, and whatever its scores brought.
CREATE OR REPLACE VIEW v_metrics_seen AS
SELECT DISTINCT run_id, metric, starts_with(scorer, 'strategy:') AS of_strategy FROM v_scores
UNION
SELECT run_id, metric, false FROM runs;

-- The value that each attempt brings to every metric of its run. A strategy's verdict stands once for
-- all the draws it chose from, so only attempts that hold one count in it. An error or timeout of the
-- model's work counts as wrong in the headline; in the other metrics as far as its scorer went.
CREATE OR REPLACE VIEW v_metric_values AS
SELECT
    a.run_id, a.task_id, a.version, a.item_id, a.epoch, a.cluster_id, a.key, m.metric,
    CASE
        WHEN m.of_strategy THEN s.value
        -- A name with a colon (`criterion:ID`) is of some items only: what has no such value has no zero.
        WHEN contains(m.metric, ':') AND s.seq IS NULL THEN NULL
        WHEN a.status IN ('error', 'timeout') AND m.metric <> a.headline
            THEN value_counted(a.status, a.error_kind, NULL, a.policy) + coalesce(s.value, 0.0)
        ELSE value_counted(a.status, a.error_kind, s.value, a.policy)
    END AS counted
FROM (SELECT v.*, r.metric AS headline FROM v_attempts v JOIN runs r USING (run_id)) a
JOIN v_metrics_seen m USING (run_id)
LEFT JOIN v_scores s
    ON s.run_id = a.run_id AND s.task_id = a.task_id AND s.version = a.version
    AND s.item_id = a.item_id AND s.epoch = a.epoch AND s.attempt = a.attempt
    AND s.metric = m.metric;

-- One row an item and metric: n epochs that count, their sum and mean.
CREATE OR REPLACE VIEW v_items_scored AS
SELECT
    run_id, task_id, version, item_id, metric, any_value(cluster_id) AS cluster_id,
    count(counted) AS n, sum(counted) AS k, avg(counted) AS mean
FROM v_metric_values
GROUP BY run_id, task_id, version, item_id, metric
HAVING count(counted) > 0;

-- One row a run: how its attempts ended, and what it used itself: retries are in, answers of earlier
-- runs are not.
CREATE OR REPLACE VIEW v_run_totals AS
WITH ended AS (
    SELECT
        run_id,
        count(*) AS n_attempts,
        count(*) FILTER (status = 'scored') AS n_scored,
        count(counted) AS n_counted,
        count(*) FILTER (status = 'error' AND coalesce(error_kind, 'model') = 'model') AS error,
        count(*) FILTER (status = 'error' AND coalesce(error_kind, 'model') <> 'model')
            AS error_harness,
        count(*) FILTER (status = 'timeout') AS timeout,
        count(*) FILTER (status = 'truncated') AS truncated,
        count(*) FILTER (status = 'refused') AS refused,
        count(*) FILTER (status = 'unscored') AS unscored,
        count(*) FILTER (status = 'unavailable') AS unavailable,
        count(*) FILTER (status = 'error' AND reason = 'no_answer') AS no_answer
    FROM v_attempts
    GROUP BY run_id
), used AS (
    SELECT
        run_id,
        count(reused_from) AS reused,
        count(*) = count(reused_from) AS all_reused,
        sum(tokens_in) FILTER (reused_from IS NULL) AS tokens_in,
        sum(tokens_out) FILTER (reused_from IS NULL) AS tokens_out,
        sum(cost_usd) FILTER (reused_from IS NULL) AS cost_usd
    FROM samples
    GROUP BY run_id
)
SELECT
    e.*, u.reused,
    CASE WHEN u.all_reused THEN 0 ELSE u.tokens_in END AS tokens_in,
    CASE WHEN u.all_reused THEN 0 ELSE u.tokens_out END AS tokens_out,
    CASE WHEN u.all_reused THEN 0 ELSE u.cost_usd END AS cost_usd
FROM ended e JOIN used u USING (run_id);

-- Runs that chose their items by what was answered before.
CREATE OR REPLACE VIEW v_adaptive_runs AS
SELECT run_id FROM runs WHERE config_json ->> '$.adaptive' = 'true';

-- One row a run and metric, adaptive runs left out: the mean of chosen items is a mean of nothing. The
-- sums that its mean and intervals need. `total` and `total_sq` are over
-- the items' means; an item without a cluster is one by itself; `cluster_sq` is the sum over clusters of
-- the squared sum of their items' deviations from the mean.
CREATE OR REPLACE VIEW v_metric_totals AS
WITH clusters AS (
    SELECT
        run_id, metric, count(*) AS n, sum(mean) AS total, sum(mean * mean) AS total_sq,
        bool_and(mean IN (0, 1)) AS is_binary
    FROM v_items_scored ANTI JOIN v_adaptive_runs USING (run_id)
    GROUP BY run_id, metric, cluster_id, CASE WHEN cluster_id IS NULL THEN item_id END
), centred AS (
    SELECT *, total - n * (sum(total) OVER of_run) / (sum(n) OVER of_run) AS deviation
    FROM clusters
    WINDOW of_run AS (PARTITION BY run_id, metric)
)
SELECT
    m.run_id, m.metric, coalesce(sum(c.n), 0) AS n_items, sum(c.total) AS total,
    sum(c.total_sq) AS total_sq, bool_and(c.is_binary) AS is_binary, count(c.n) AS n_clusters,
    sum(c.deviation * c.deviation) AS cluster_sq
FROM (
    SELECT DISTINCT run_id, metric FROM v_metrics_seen ANTI JOIN v_adaptive_runs USING (run_id)
) m
LEFT JOIN centred c USING (run_id, metric)
GROUP BY m.run_id, m.metric;

-- One row an item for every variant and strategy, over all their runs: the strategy's verdict where
-- there is one, else the headline. An answer that was reused from an earlier run is the same answer: it
-- counts once. Runs without the data (an ablation) are no answers to the items. `adaptive`: no other run
-- has an answer to the item.
CREATE OR REPLACE VIEW v_item_scores AS
WITH verdicts AS (
    SELECT run_id, min(metric) AS metric FROM v_metrics_seen WHERE of_strategy GROUP BY run_id
), answers AS (
    SELECT
        r.variant_id, r.strategy, v.*,
        bool_and(coalesce(r.config_json ->> '$.adaptive', 'false') = 'true') OVER (
            PARTITION BY r.variant_id, r.strategy, v.task_id, v.version, v.item_id
        ) AS adaptive
    FROM v_metric_values v
    JOIN runs r USING (run_id)
    LEFT JOIN verdicts USING (run_id)
    WHERE v.counted IS NOT NULL AND v.metric = coalesce(verdicts.metric, r.metric)
        AND coalesce(r.config_json ->> '$.no_data', 'false') <> 'true'
    QUALIFY row_number() OVER (
        PARTITION BY r.variant_id, r.strategy, v.task_id, v.version, v.item_id, v.key,
            CASE WHEN v.key IS NULL THEN v.run_id || '/' || v.epoch END
        ORDER BY r.submitter IS NOT NULL, v.run_id DESC, v.epoch DESC
    ) = 1
)
SELECT variant_id, strategy, task_id, version, item_id, count(*) AS n, sum(counted) AS k,
    avg(counted) AS mean, any_value(cluster_id) AS cluster_id, bool_and(adaptive) AS adaptive
FROM answers
GROUP BY variant_id, strategy, task_id, version, item_id;
