-- One turn: the rows of the temporary table `batch` go where they belong. The variables run, task and
-- version are set by the loader. Runs inside the transaction that also moves the journal's offset.

INSERT INTO samples
SELECT
    run_id, getvariable('task'), getvariable('version'), item_id, epoch, attempt,
    TRY_CAST(left(key, 32) AS UUID), status, error_kind, finish_reason, tokens_in, tokens_out,
    tokens_reasoning, reused_from, isolation, latency_ms, peak_mem_bytes, cost_usd, ts, seq
FROM batch
WHERE type = 'sample';

INSERT INTO scores
WITH verdicts AS (
    SELECT *, unnest(map_entries(metrics)) AS more FROM batch WHERE type = 'score'
)
SELECT
    run_id, getvariable('task'), getvariable('version'), item_id, epoch, attempt, seq, scorer,
    scorer_version, metric, status, value, passed, left(answer, 200), reason, judge_variant, replaces,
    isolation
FROM batch
WHERE type = 'score'
UNION ALL
SELECT
    run_id, getvariable('task'), getvariable('version'), item_id, epoch, attempt, seq, scorer,
    scorer_version, more.key, status, more.value, NULL, NULL, NULL, judge_variant, replaces, isolation
FROM verdicts
WHERE more.key <> metric;

INSERT INTO events
SELECT
    run_id, seq, CASE WHEN type = 'event' THEN kind ELSE type END, ts, item_id, epoch, attempt,
    CASE
        WHEN type = 'run_finished' THEN
            to_json({'status': status, 'seconds': seconds, 'cached': coalesce(cached, 0)})
        WHEN type = 'event' AND length(data) <= 1000 THEN data
    END
FROM batch
WHERE type IN ('event', 'run_started', 'run_finished');

UPDATE runs SET
    status = f.status, finished = f.ts, seconds = f.seconds, cached = coalesce(f.cached, 0)
FROM (SELECT * FROM batch WHERE type = 'run_finished' ORDER BY seq DESC LIMIT 1) f
WHERE runs.run_id = f.run_id;

UPDATE runs SET status = 'running', finished = NULL
FROM (
    SELECT max(seq) FILTER (WHERE type = 'event' AND kind = 'resumed') AS resumed,
        coalesce(max(seq) FILTER (WHERE type = 'run_finished'), -1) AS ended
    FROM batch
) b
WHERE runs.run_id = getvariable('run') AND b.resumed > b.ended;

INSERT INTO stale_runs
SELECT getvariable('run')
WHERE NOT EXISTS (SELECT 1 FROM stale_runs s WHERE s.run_id = getvariable('run'));
