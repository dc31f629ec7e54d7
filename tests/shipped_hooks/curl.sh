#!/bin/sh
# Stands in for `curl` and the metadata services: the file `metadata` has a path and a value on each
# line. Each service wants its own header; Amazon's wants a token, which it gives for a PUT.
set -eu
# shellcheck source=./tests/shipped_hooks/fake.sh
. "$FAKES/fake.sh"

echo "$*" >>"$CLOUD/command-lines"
url='' headers='' method=GET
while [ $# -gt 0 ]; do
    case $1 in
    --header)
        headers=$(cat "${2#@}")
        shift
        ;;
    --request)
        method=$2
        shift
        ;;
    --noproxy | --connect-timeout | --max-time | --retry) shift ;;
    http://169.254.169.254/*) url=${1#http://169.254.169.254/} ;;
    --disable | --silent | --show-error | --fail) ;;
    *) fail "curl: unknown argument $1" ;;
    esac
    shift
done
begin metadata

case $method,$url,$headers in
PUT,latest/api/token,"X-aws-ec2-metadata-token-ttl-seconds: "[1-9]*)
    printf 'secret-token'
    exit
    ;;
GET,latest/meta-data/*,"X-aws-ec2-metadata-token: secret-token") ;;
GET,metadata/instance/*"?api-version=2021-02-01&format=text,Metadata: true") ;;
GET,computeMetadata/v1/*,"Metadata-Flavor: Google") ;;
*) fail "curl: error 401 for $method $url" ;;
esac
value=$(awk -v path="${url%%\?*}" '$1 == path { print $2 }' "$CLOUD/metadata")
[ -n "$value" ] || fail "curl: (22) error 404"
printf '%s' "$value"
