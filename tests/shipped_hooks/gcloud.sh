#!/bin/sh
# Stands in for `gcloud`. A line of the state has name, range and next hop of a route, with commas.
set -eu
# shellcheck source=./tests/shipped_hooks/fake.sh
. "$FAKES/fake.sh"

[ "$1 $2" = "compute routes" ] || fail "gcloud: unknown command $*"
operation=$3
shift 3
names='' range='' instance='' zone='' network='' filter=''
project=''
while [ $# -gt 0 ]; do
    case $1 in
    --quiet)
        shift
        continue
        ;;
    --project) project=$2 ;;
    --destination-range) range=$2 ;;
    --next-hop-instance) instance=$2 ;;
    --next-hop-instance-zone) zone=$2 ;;
    --network) network=$2 ;;
    --filter) filter=$2 ;;
    --format) [ "$2" = 'csv[no-heading](name,destRange,nextHopInstance)' ] || fail "format $2" ;;
    --*) fail "gcloud: unknown option $1" ;;
    *)
        names="$names $1"
        shift
        continue
        ;;
    esac
    shift 2
done
[ "$project" = shop-1 ] || fail "gcloud: wrong project '$project'"
begin "$operation"

case $operation in
list)
    [ "${filter%% AND *}" = 'network~"/default$"' ] || fail "gcloud: wrong filter $filter"
    pattern=${filter#* AND name~\"}
    pattern=${pattern%\"}
    shown | awk -F, -v pattern="$pattern" '$1 ~ pattern'
    ;;
delete)
    for name in $names; do
        grep -q "^$name," "$CLOUD/state" || fail "gcloud: $name was not found"
        { grep -v "^$name," "$CLOUD/state" || true; } | becomes
    done
    ;;
create)
    [ "$network" = default ] || fail "gcloud: wrong network $network"
    name=${names# }
    ! grep -q "^$name," "$CLOUD/state" || fail "gcloud: $name already exists"
    hop=https://compute.example/v1/projects/$project/zones/$zone/instances/$instance
    { cat "$CLOUD/state"; echo "$name,$range,$hop"; } | becomes
    ;;
*) fail "gcloud: unknown operation $operation" ;;
esac
