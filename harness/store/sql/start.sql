-- The first turn of a run: what its run_started says. A task, item or model that an earlier run brought
-- is not entered again.

INSERT INTO runs
SELECT
    run_id, task, task_version, model, identity ->> '$.variant_id', is_baseline, strategy, solver,
    scorer, metric, seed, errors, epochs, n_planned, 'running', ts, NULL, NULL, NULL,
    environment ->> '$.git_commit', CAST(environment ->> '$.dirty' AS BOOLEAN),
    environment ->> '$.submitter', NULL, config, environment
FROM batch
WHERE type = 'run_started' AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_id = batch.run_id)
QUALIFY row_number() OVER (ORDER BY seq) = 1;

INSERT INTO models
SELECT
    identity ->> '$.model_id', identity ->> '$.family', TRY_CAST(identity ->> '$.params' AS BIGINT),
    TRY_CAST(identity ->> '$.release_date' AS DATE), identity ->> '$.license',
    identity ->> '$.source', identity ->> '$.revision', identity ->> '$.sha256', is_baseline
FROM batch
WHERE type = 'run_started'
    AND NOT EXISTS (SELECT 1 FROM models m WHERE m.model_id = identity ->> '$.model_id')
QUALIFY row_number() OVER (ORDER BY seq) = 1;

INSERT INTO model_variants
SELECT
    identity ->> '$.variant_id', identity ->> '$.model_id', identity ->> '$.backend',
    identity ->> '$.name', identity ->> '$.revision', identity ->> '$.dtype',
    identity ->> '$.quantisation', TRY_CAST(identity ->> '$.quant_simulated' AS BOOLEAN),
    TRY_CAST(identity ->> '$.bits_w' AS DOUBLE), TRY_CAST(identity ->> '$.bits_a' AS DOUBLE),
    TRY_CAST(identity ->> '$.bits_kv' AS DOUBLE), TRY_CAST(identity ->> '$.group_size' AS INTEGER),
    TRY_CAST(identity ->> '$.weight_bytes' AS BIGINT), identity
FROM batch
WHERE type = 'run_started'
    AND NOT EXISTS (SELECT 1 FROM model_variants m WHERE m.variant_id = identity ->> '$.variant_id')
QUALIFY row_number() OVER (ORDER BY seq) = 1;

INSERT INTO tasks
SELECT
    task, task_version, task_info ->> '$.benchmark', task_info ->> '$.split',
    task_info ->> '$.dataset_sha256', task_info ->> '$.prompt_sha256',
    task_info ->> '$.scorer_sha256', task_info ->> '$.license', task_info ->> '$.source',
    coalesce(task_info ->> '$.metric', metric),
    TRY_CAST(task_info ->> '$.higher_is_better' AS BOOLEAN),
    task_info ->> '$.human_time_source', task_info
FROM batch
WHERE type = 'run_started' AND NOT EXISTS (
    SELECT 1 FROM tasks t WHERE t.task_id = batch.task AND t.version = batch.task_version
)
QUALIFY row_number() OVER (ORDER BY seq) = 1;

INSERT INTO items
SELECT
    task, task_version, i.item_id, i.cluster_id, i.category, i.human_minutes, i.content_sha256,
    i.public, i.canary
FROM (SELECT task, task_version, seq, unnest(items) AS i FROM batch WHERE type = 'run_started') p
WHERE NOT EXISTS (
    SELECT 1 FROM items k
    WHERE k.task_id = p.task AND k.version = p.task_version AND k.item_id = p.i.item_id
)
QUALIFY row_number() OVER (PARTITION BY i.item_id ORDER BY seq) = 1;

-- Human minutes may come to be known after an item's first run: the first that are stated count.
UPDATE tasks SET human_time_source = b.task_info ->> '$.human_time_source'
FROM batch b
WHERE b.type = 'run_started' AND tasks.task_id = b.task AND tasks.version = b.task_version
    AND tasks.human_time_source IS NULL AND b.task_info ->> '$.human_time_source' IS NOT NULL;

UPDATE items SET human_minutes = p.i.human_minutes
FROM (
    SELECT task, task_version, unnest(items) AS i FROM batch WHERE type = 'run_started'
) p
WHERE items.task_id = p.task AND items.version = p.task_version AND items.item_id = p.i.item_id
    AND items.human_minutes IS NULL AND p.i.human_minutes IS NOT NULL;
