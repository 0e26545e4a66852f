[CmdletBinding(SupportsShouldProcess = $true)]
param(
    # The peers that get the template, as an address and a prefix length: 192.0.2.0/24.
    [ValidatePattern('^[0-9A-Fa-f.:]+/[0-9]+$')]
    [string] $PeerPrefix,
    [switch] $Undo,
    [switch] $Force,
    [string] $Backup
)
$BackupName = 'fullpipe-template-before.xml'
if (-not $Undo -and -not $PeerPrefix) {
    throw 'Say which peers get the template: -PeerPrefix 192.0.2.0/24. Nothing was changed.'
}
