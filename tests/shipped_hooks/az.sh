#!/bin/sh
# Stands in for `az`. A line of the state has name, prefix, type, address and state of a route, with
# tabs.
set -eu
# shellcheck source=./tests/shipped_hooks/fake.sh
. "$FAKES/fake.sh"

if [ "$*" = "login --identity --output none" ]; then
    begin login
    touch "$AZURE_CONFIG_DIR/token"
    exit
fi
[ "$1 $2 $3" = "network route-table route" ] || fail "az: unknown command $*"
operation=$4
shift 4
name='' prefix='' kind='' hop='' place=''
while [ $# -gt 0 ]; do
    case $1 in
    --no-wait)
        shift
        continue
        ;;
    --name) name=$2 ;;
    --address-prefix) prefix=$2 ;;
    --next-hop-type) kind=$2 ;;
    --next-hop-ip-address) hop=$2 ;;
    --subscription | --resource-group | --route-table-name) place="$place $2" ;;
    --output | --query) ;;
    *) fail "az: unknown option $1" ;;
    esac
    shift 2
done
[ "$place" = " 0b1f1d88 web-rg web-routes" ] || fail "az: wrong table:$place"
begin "$operation"
[ -e "$AZURE_CONFIG_DIR/token" ] || fail "ERROR: Please run 'az login' to setup account."

exists() {
    grep -q "^$name	" "$CLOUD/state"
}

case $operation in
list) shown ;;
update | create)
    if exists; then
        [ "$operation" = update ] || fail "az: $name exists"
    else
        [ "$operation" = create ] || fail "az: there is no $name"
    fi
    { grep -v "^$name	" "$CLOUD/state" || true
      printf '%s\t%s\t%s\t%s\tSucceeded\n' "$name" "$prefix" "$kind" "$hop"; } | becomes
    ;;
delete)
    exists || fail "az: there is no $name"
    { grep -v "^$name	" "$CLOUD/state" || true; } | becomes
    ;;
*) fail "az: unknown operation $operation" ;;
esac
