-- The rules of harness/core/status.py for everything stored; a test compares the two over every
-- combination. Read by `connect` and put in place whenever this text changes: no migration needed.

CREATE OR REPLACE MACRO status_of(solved, scored) AS
    CASE WHEN solved = 'unscored' AND scored IS NOT NULL THEN scored ELSE solved END;

CREATE OR REPLACE MACRO value_counted(status, kind, value, policy) AS
    CASE
        WHEN status IN ('unscored', 'unavailable') THEN NULL
        WHEN status = 'scored' THEN value
        WHEN status = 'truncated' THEN coalesce(value, 0.0)
        WHEN status = 'refused' THEN 0.0
        WHEN coalesce(kind, 'model') <> 'model' OR policy = 'exclude' THEN NULL
        ELSE 0.0
    END;

-- The valid value of every metric of every attempt.
CREATE OR REPLACE VIEW v_scores AS
SELECT * FROM scores
QUALIFY row_number() OVER (
    PARTITION BY run_id, task_id, version, item_id, epoch, attempt, metric ORDER BY seq DESC
) = 1;

-- One row an item and epoch: its latest attempt with its valid headline score.
CREATE OR REPLACE VIEW v_attempts AS
WITH latest AS (
    SELECT * FROM samples
    QUALIFY row_number() OVER (
        PARTITION BY run_id, task_id, version, item_id, epoch ORDER BY attempt DESC, text_id DESC
    ) = 1
), joined AS (
    SELECT
        s.* EXCLUDE (status, error_kind),
        status_of(s.status, h.status) AS status,
        s.status = 'unscored' AND coalesce(h.status = 'error', false) AS by_score,
        s.error_kind AS solve_error_kind,
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
    k.latency_ms, k.peak_mem_bytes, k.cost_usd, k.isolation, k.reused_from, k.key, k.ts,
    k.text_id, k.score_seq, k.policy
FROM known k
LEFT JOIN items i USING (task_id, version, item_id);

-- Every metric that was seen in a run, with the value that each attempt brings to it. A strategy's
-- verdict stands once for all the draws it chose from, so only attempts that hold one count in it.
CREATE OR REPLACE VIEW v_metric_values AS
WITH seen AS (
    SELECT DISTINCT run_id, metric, starts_with(scorer, 'strategy:') AS of_strategy FROM scores
    UNION
    SELECT run_id, metric, false FROM runs
)
SELECT
    a.run_id, a.task_id, a.version, a.item_id, a.epoch, a.cluster_id, a.key, m.metric,
    CASE
        WHEN m.of_strategy THEN s.value
        ELSE value_counted(a.status, a.error_kind, s.value, a.policy)
    END AS counted
FROM v_attempts a
JOIN seen m USING (run_id)
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
