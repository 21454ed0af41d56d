SELECT format('event %s of project %s (tenant %s) is about task %s of project %s (tenant %s)', e.event_id, e.project_id, e.tenant_id, t.id, t.project_id, t.tenant_id) AS violation
FROM task_events e JOIN generation_tasks t ON t.id = e.task_id
WHERE (e.tenant_id, e.project_id) IS DISTINCT FROM (t.tenant_id, t.project_id)
UNION ALL
SELECT format('task %s of tenant %s is in project %s of tenant %s', t.id, t.tenant_id, p.id, p.tenant_id)
FROM generation_tasks t JOIN projects p ON p.id = t.project_id
WHERE p.tenant_id <> t.tenant_id
UNION ALL
SELECT format('asset %s of project %s belongs to task %s of project %s', a.id, a.project_id, t.id, t.project_id)
FROM assets a JOIN generation_tasks t ON t.id = a.task_id
WHERE (a.tenant_id, a.project_id) IS DISTINCT FROM (t.tenant_id, t.project_id)
