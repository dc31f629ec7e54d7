#!/bin/sh
# Stands in for `aws`. A line of the state is an interface and an address.
set -eu
# shellcheck source=./tests/shipped_hooks/fake.sh
. "$FAKES/fake.sh"

[ "$1" = ec2 ] || fail "no service $1"
operation=$2
shift 2
interface='' filter='' addresses='' may_move=0 region='' query=''
while [ $# -gt 0 ]; do
    option=$1
    shift
    case $option in
    --allow-reassignment) may_move=1 ;;
    --network-interface-id | --network-interface-ids) interface=$1 ;;
    --filters) filter=${1#Name=ipv6-addresses.ipv6-address,Values=} ;;
    --private-ip-addresses | --ipv6-addresses)
        while [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; do
            addresses="$addresses $1"
            shift
        done
        continue
        ;;
    --region) region=$1 ;;
    --query) query=$1 ;;
    --output | --cli-connect-timeout | --cli-read-timeout) ;;
    *) fail "aws: unknown option $option" ;;
    esac
    [ "$option" = --allow-reassignment ] || shift
done
[ "$region" = eu-north-1 ] || fail "aws: wrong region '$region'"
begin "$operation"

case $operation in
describe-network-interfaces)
    [ -n "$query" ] || fail "aws: no query"
    if [ -n "$filter" ]; then
        shown | awk -v address="$filter" '$2 == address { print $1 }'
    else
        shown | awk -v id="$interface" '$1 == id { printf "%s%s", separator, $2; separator = "\t" }'
        echo
    fi
    ;;
assign-*)
    for address in $addresses; do
        held=$(awk -v address="$address" '$2 == address' "$CLOUD/state")
        [ -z "$held" ] || [ "$may_move" -eq 1 ] || fail "InvalidParameterValue: $address in use"
    done
    for address in $addresses; do
        { grep -v " $address\$" "$CLOUD/state" || true; echo "$interface $address"; } | becomes
    done
    ;;
unassign-*)
    for address in $addresses; do
        grep -q "^$interface $address\$" "$CLOUD/state" ||
            fail "InvalidParameterValue: $address is not assigned to $interface"
        { grep -v "^$interface $address\$" "$CLOUD/state" || true; } | becomes
    done
    ;;
*) fail "aws: unknown operation $operation" ;;
esac
