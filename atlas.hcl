# Configuration of the Atlas command line: `atlas migrate diff --env local` drafts
# a migration from schema.sql. Partitions and functions are outside its diff: they
# are added by hand, and the drift test compares the whole catalog.
env "local" {
  src = "file://schema/schema.sql"
  dev = getenv("AIVEDIO_ATLAS_DEV_URL")
  migration {
    dir = "file://schema/migrations"
  }
}
