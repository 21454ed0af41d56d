-- name: TenantInsert :execrows
INSERT INTO tenants (id, name, created_at) VALUES (@id, @name, @created_at) ON CONFLICT (name) DO NOTHING;

-- name: TenantByName :one
SELECT t.id, t.name, t.created_at, (-a.granted)::bigint AS credits
FROM tenants t JOIN ledger_accounts a ON a.tenant_id = t.id WHERE t.name = @name;

-- name: ProjectInsert :execrows
INSERT INTO projects (id, tenant_id, name, on_late_success, created_at)
VALUES (@id, @tenant_id, @name, @on_late_success, @created_at) ON CONFLICT (tenant_id, name) DO NOTHING;

-- name: ProjectByName :one
SELECT * FROM projects WHERE tenant_id = @tenant_id AND name = @name;

-- name: ProjectGet :one
SELECT * FROM projects WHERE id = @id AND tenant_id = @tenant_id;

-- name: KeyInsert :exec
INSERT INTO api_keys (id, tenant_id, project_id, name, prefix, key_hash, scopes, created_at)
VALUES (@id, @tenant_id, @project_id, @name, @prefix, @key_hash, @scopes, @created_at);

-- name: KeyByHash :one
SELECT * FROM api_keys WHERE key_hash = @key_hash AND revoked_at IS NULL;

-- name: KeysOfTenant :many
SELECT * FROM api_keys WHERE sqlc.narg(tenant_id)::uuid IS NULL OR tenant_id = sqlc.narg(tenant_id)::uuid ORDER BY created_at DESC, id DESC;

-- name: KeyRevoke :one
UPDATE api_keys SET revoked_at = @now::timestamptz WHERE id = @id AND revoked_at IS NULL RETURNING tenant_id;

-- name: RevocationInsert :exec
INSERT INTO revocations (kind, subject, tenant_id, revoked_at) VALUES (@kind, @subject, @tenant_id, @revoked_at);
