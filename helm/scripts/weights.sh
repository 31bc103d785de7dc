# Checks a site's cards and weights in $WEIGHTS against $SHA256SUMS, and lays them where the home ($MODELS) has them.
set -eu
cd "$WEIGHTS"
printf '%s\n' "$SHA256SUMS" | sha256sum --check --strict --quiet
for file in *; do
    [ -d "$file" ] && [ ! -L "$file" ] && continue
    printf '%s\n' "$SHA256SUMS" | cut -c67- | grep -qxF -- "$file" && continue
    echo "$file is not in weights.sha256; list it there or take it away" >&2
    exit 1
done
if [ -e "$MODELS" ] && [ ! -L "$MODELS" ]; then
    echo "$MODELS holds models of its own; move them to the volume of weights" >&2
    exit 1
fi
[ "$(readlink "$MODELS" || true)" = "$WEIGHTS" ] || ln -sfn "$WEIGHTS" "$MODELS"
