-- name: DurationLearn :execrows
-- The newest successes of each model, found model by model in their index. Two that
-- learn at once write the same.
WITH RECURSIVE models AS (
    (SELECT a.provider, a.model FROM task_attempts a
     WHERE a.status = 'succeeded' AND a.submitted_at IS NOT NULL ORDER BY a.provider, a.model LIMIT 1)
    UNION ALL
    SELECT n.provider, n.model FROM models CROSS JOIN LATERAL (
        SELECT a.provider, a.model FROM task_attempts a
        WHERE a.status = 'succeeded' AND a.submitted_at IS NOT NULL AND (a.provider, a.model) > (models.provider, models.model)
        ORDER BY a.provider, a.model LIMIT 1) n
), learned AS (
    SELECT models.provider, models.model, count(*)::int AS samples,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY s.took_ms) AS p50, percentile_cont(0.95) WITHIN GROUP (ORDER BY s.took_ms) AS p95
    FROM models CROSS JOIN LATERAL (
        SELECT EXTRACT(EPOCH FROM GREATEST(a.terminal_at, a.submitted_at) - a.submitted_at)::float8 * 1000 AS took_ms FROM task_attempts a
        WHERE a.status = 'succeeded' AND a.submitted_at IS NOT NULL AND a.provider = models.provider AND a.model = models.model
        ORDER BY a.terminal_at DESC LIMIT @sample) s
    GROUP BY models.provider, models.model
)
INSERT INTO model_durations (provider, model, p50_ms, p95_ms, samples, updated_at)
SELECT learned.provider, learned.model, learned.p50::bigint, learned.p95::bigint, learned.samples, @now FROM learned
ORDER BY learned.provider, learned.model
ON CONFLICT (provider, model) DO UPDATE SET
    p50_ms = excluded.p50_ms, p95_ms = excluded.p95_ms, samples = excluded.samples, updated_at = excluded.updated_at;

-- name: DurationList :many
SELECT * FROM model_durations ORDER BY provider, model;
